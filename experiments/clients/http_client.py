"""Translates lines over HTTP: python http_client.py http://127.0.0.1:8501 MODEL [TOKEN] < FILE."""

import json
import sys
import urllib.request

url, model, *token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [{"text": line.removesuffix("\n").rstrip("\r")} for line in stream]
count = 100
while texts:
    body = json.dumps({"instances": texts[:count]}, ensure_ascii=False).encode()
    if len(body) > 250_000 and count > 1:  # a server's limit is 262,144 bytes by default
        count //= 2
        continue
    del texts[:count]
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/models/{model}:predict", body, headers)
    with urllib.request.urlopen(request) as response:
        for prediction in json.load(response)["predictions"]:
            print(prediction["translations"][0])
