"""Translates lines over HTTP: python http_client.py http://127.0.0.1:8501 MODEL [TOKEN] < FILE."""

import json
import sys
import urllib.request

url, model, *token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [{"text": line.removesuffix("\n").rstrip("\r")} for line in stream]
while texts:
    count = 100
    while True:  # until the body fits: a server's limit is 262,144 bytes by default
        body = json.dumps({"instances": texts[:count]}, ensure_ascii=False).encode()
        if len(body) <= 250_000 or count == 1:
            break
        count //= 2
    del texts[:count]
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/models/{model}:predict", body, headers)
    with urllib.request.urlopen(request) as response:
        for prediction in json.load(response)["predictions"]:
            print(prediction["translations"][0])
