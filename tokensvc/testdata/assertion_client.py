"""Gets tokens with Authlib's private_key_jwt, by a key in PEM, and with an assertion from a file, through requests-oauthlib:
assertion_client.py BASE-URL ISSUER KEY-FILE ALGORITHM ASSERTION-FILE"""
import os
import sys

import jwt
from authlib.integrations.requests_client import OAuth2Session as Authlib
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from oauthlib.oauth2 import BackendApplicationClient
from requests_oauthlib import OAuth2Session

base, issuer, key_file, algorithm, assertion_file = sys.argv[1:]
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback

# Authlib signs an assertion for each token. What it calls token_endpoint is the audience, which here is the issuer.
with open(key_file) as key:
    signing = Authlib("demo", key.read(), token_endpoint_auth_method="private_key_jwt")
signing.register_client_auth_method(PrivateKeyJWT(token_endpoint=issuer, alg=algorithm))
tokens = [signing.fetch_token(base + "/oauth2/token") for _ in range(2)]

# A workload's assertion is sent as it is in the file at the time.
workload = OAuth2Session(client=BackendApplicationClient(client_id="shop"))
with open(assertion_file) as assertion:
    tokens.append(
        workload.fetch_token(
            base + "/oauth2/token",
            include_client_id=True,
            client_assertion_type="urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            client_assertion=assertion.read().strip(),
        )
    )

for token, subject in zip(tokens, ["demo", "demo", "system:serviceaccount:shop:batch"]):
    key = jwt.PyJWKClient(base + "/oauth2/jwks").get_signing_key_from_jwt(token["access_token"])
    claims = jwt.decode(token["access_token"], key.key, algorithms=["RS256"], audience=["demo", "shop"], issuer=issuer)
    assert claims["sub"] == subject, claims
