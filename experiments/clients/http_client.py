"""Translates lines over HTTP: python http_client.py http://127.0.0.1:8501 MODEL [TOKEN] < FILE."""

import json
import sys
import urllib.request

url, model, *token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [{"text": line.removesuffix("\n").rstrip("\r")} for line in stream]
for first in range(0, len(texts), 100):
    body = json.dumps({"instances": texts[first : first + 100]}).encode()
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/models/{model}:predict", body, headers)
    with urllib.request.urlopen(request) as response:
        for prediction in json.load(response)["predictions"]:
            print(prediction["translations"][0])
