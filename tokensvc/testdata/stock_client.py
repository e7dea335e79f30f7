"""Gets a token with two stock OAuth clients and verifies it with a stock JWT library: stock_client.py BASE-URL"""
import os
import sys

import jwt
from authlib.integrations.requests_client import OAuth2Session as Authlib
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session

base = sys.argv[1]
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback

first = OAuth2Session(client=BackendApplicationClient(client_id="demo", scope=["read"])).fetch_token(
    base + "/oauth2/token", client_id="demo", client_secret="s3cret", include_client_id=True
)
second = Authlib("demo", "s3cret", token_endpoint_auth_method="client_secret_post").fetch_token(base + "/oauth2/token")
assert first["scope"] == ["read"], first

for token in first, second:
    key = jwt.PyJWKClient(base + "/oauth2/jwks").get_signing_key_from_jwt(token["access_token"])
    claims = jwt.decode(token["access_token"], key.key, algorithms=["RS256"], audience="demo", issuer="http://tokens.test")
    assert claims["sub"] == "demo" and claims["exp"] - claims["iat"] == token["expires_in"], claims
