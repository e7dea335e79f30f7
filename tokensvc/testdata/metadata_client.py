"""Validates the metadata at both paths with Authlib: metadata_client.py BASE-URL"""
import json
import sys
import urllib.request

from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oidc.discovery import OpenIDProviderMetadata

for name in "oauth-authorization-server", "openid-configuration":
    document = json.load(urllib.request.urlopen(f"{sys.argv[1]}/.well-known/{name}"))
    AuthorizationServerMetadata(document).validate()
    OpenIDProviderMetadata(document).validate()
