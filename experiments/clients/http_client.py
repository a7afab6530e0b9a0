"""Translates standard input over HTTP: python http_client.py http://127.0.0.1:8501 MODEL."""

import json
import sys
import urllib.request

url, model = sys.argv[1:]
body = json.dumps({"instances": [{"text": line.rstrip("\n")} for line in sys.stdin]}).encode()
with urllib.request.urlopen(f"{url}/v1/models/{model}:predict", body) as response:
    for prediction in json.load(response)["predictions"]:
        print(prediction["translations"][0])
