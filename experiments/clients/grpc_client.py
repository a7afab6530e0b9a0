"""Translates standard input over gRPC: python grpc_client.py 127.0.0.1:8500 MODEL.

Works with TensorFlow Serving. Needs the packages tensorflow and tensorflow-serving-api.
"""

import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

address, model = sys.argv[1:]
request = predict_pb2.PredictRequest()
request.model_spec.name = model
request.model_spec.signature_name = "serving_default"
with open(0, encoding="utf-8", newline="\n") as stream:
    texts = [line.removesuffix("\n").rstrip("\r") for line in stream]
with grpc.insecure_channel(address) as channel:
    service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    for first in range(0, len(texts), 100):
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts[first : first + 100]))
        response = service.Predict(request, 60.0)
        for translations in tf.make_ndarray(response.outputs["translations"]):
            print(translations[0].decode())
