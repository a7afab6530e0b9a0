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
request.inputs["text"].CopyFrom(tf.make_tensor_proto([line.rstrip("\n") for line in sys.stdin]))
with grpc.insecure_channel(address) as channel:
    response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, 60.0)
for translations in tf.make_ndarray(response.outputs["translations"]):
    print(translations[0].decode())
