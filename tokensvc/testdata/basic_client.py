"""Gets a token with Authlib, which sends Basic credentials raw: basic_client.py BASE-URL CLIENT-ID SECRET"""
import os
import sys

from authlib.integrations.requests_client import OAuth2Session

base, client_id, secret = sys.argv[1:]
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback
session = OAuth2Session(client_id, secret, token_endpoint_auth_method="client_secret_basic")
assert session.fetch_token(base + "/oauth2/token")["access_token"]
