"""Translates standard input over HTTP: python http_client.py http://127.0.0.1:8501 MODEL."""

import json
import sys
import urllib.request

url, model = sys.argv[1:]
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [{"text": line.rstrip("\n")} for line in stream]
for first in range(0, len(texts), 100):
    body = json.dumps({"instances": texts[first : first + 100]}).encode()
    with urllib.request.urlopen(f"{url}/v1/models/{model}:predict", body) as response:
        for prediction in json.load(response)["predictions"]:
            print(prediction["translations"][0])
