"""Tokens made by libraries of another make: jwcrypto, Authlib and PyJWT.

Reads {"key": PEM, "issuer": ..., "now": ...} and writes a list of [name,
token, accepted]. The names begin with the number of the case.
"""

import base64
import json
import sys

import jwt
from authlib.jose import JsonWebEncryption, JsonWebSignature, JsonWebToken
from jwcrypto import jwe, jwk, jws

given = json.load(sys.stdin)
pem, issuer, now = given["key"].encode(), given["issuer"], given["now"]
key = jwk.JWK.from_pem(pem)
public = key.export_to_pem()
other = jwk.JWK.generate(kty="RSA", size=2048)
rows = []


def claims(**changes):
    c = {"iss": issuer, "sub": "demo", "aud": "eventsvc", "iat": now, "nbf": now, "exp": now + 300}
    c.update(changes)
    return {name: value for name, value in c.items() if value != "absent"}


def b64(data):
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def add(name, token, accepted=False):
    rows.append([name, token.decode() if isinstance(token, bytes) else token, accepted])


def sign(payload, header=None, by=key, algs=None):
    """By jwcrypto, with the header as it is given."""
    header = {"alg": "RS256", "kid": "k1"} if header is None else header
    t = jws.JWS(payload if isinstance(payload, (str, bytes)) else json.dumps(payload))
    t.allowed_algs = algs or jws.default_allowed_algs
    t.add_signature(by, None, json.dumps(header), None)
    return t.serialize(compact=True)


good = sign(claims())
add("good, by jwcrypto", good, True)
add("good, by PyJWT", jwt.encode(claims(), pem, algorithm="RS256", headers={"kid": "k1"}), True)
add("good, by Authlib", JsonWebToken(["RS256"]).encode({"alg": "RS256", "kid": "k1"}, claims(), pem), True)
add("N5 by PyJWT", jwt.encode(claims(), None, algorithm="none", headers={"kid": "k1"}))
for alg in ["none", "None", "nOnE", "NONE", ""]:
    add(f"N6 {alg}", b64(json.dumps({"alg": alg, "kid": "k1"})) + "." + b64(json.dumps(claims())) + ".")
for name, secret in {
    "N7 PEM": public,
    "N7 PEM without its last line feed": public.rstrip(b"\n"),
    "N8 modulus": json.loads(key.export_public())["n"].encode(),
    "N8 JWK": key.export_public().encode(),
}.items():
    for alg in ["HS256", "HS384", "HS512"]:
        symmetric = jwk.JWK(kty="oct", k=b64(secret))
        add(f"{name} {alg}", sign(claims(), {"alg": alg, "kid": "k1"}, symmetric))
        add(f"{name} {alg} called RS256", b64('{"alg":"RS256","kid":"k1"}') + sign(claims(), {"alg": alg, "kid": "k1"}, symmetric)[len(b64('{"alg":"HS256","kid":"k1"}')):])
for alg in ["RS384", "RS512", "PS256", "PS384", "PS512"]:
    real = sign(claims(), {"alg": alg, "kid": "k1"})
    add(f"N12 {alg}", real)
    add(f"N10 {alg} called RS256", ".".join([b64('{"alg":"RS256","kid":"k1"}')] + real.split(".")[1:]))
for curve, alg in {"P-256": "ES256", "P-384": "ES384", "secp256k1": "ES256K"}.items():
    add(f"N12 {alg}", sign(claims(), {"alg": alg, "kid": "k1"}, jwk.JWK.generate(kty="EC", crv=curve), [alg]))
add("N12 EdDSA", sign(claims(), {"alg": "EdDSA", "kid": "k1"}, jwk.JWK.generate(kty="OKP", crv="Ed25519")))
add("N13 no kid", sign(claims(), {"alg": "RS256"}))
for kid in ["k2", "K1", "k1 ", "", "k1\u0000", "../k1", "é", "k" * 129]:
    add(f"N14 kid {kid!r:.20}", sign(claims(), {"alg": "RS256", "kid": kid}))
own = json.loads(other.export_public())
add("N17 jwk", sign(claims(), {"alg": "RS256", "kid": "k1", "jwk": own}, other))
add("N17 jwk without kid", sign(claims(), {"alg": "RS256", "jwk": own}, other))
add("N18 jku", sign(claims(), {"alg": "RS256", "kid": other.thumbprint(), "jku": issuer + "/evil"}, other))
add("N18 x5u", sign(claims(), {"alg": "RS256", "kid": other.thumbprint(), "x5u": issuer + "/evil"}, other))
add("N19 x5t", sign(claims(), {"alg": "RS256", "kid": "k1", "x5t": "AAAA"}), True)
add("N20 crit", good.split(".")[0] and b64('{"alg":"RS256","kid":"k1","crit":["exp"],"exp":1}') + "." + good.split(".", 1)[1])
unencoded = jws.JWS(json.dumps(claims()))
unencoded.add_signature(key, None, json.dumps({"alg": "RS256", "kid": "k1", "b64": True, "crit": ["b64"]}), None)
add("N22 b64 true, crit", unencoded.serialize(compact=True))
for typ, accepted in {
    "JWT": True, "jwt": True, "at+jwt": True, "AT+JWT": True, "application/at+jwt": True,
    "application/jwt": False, "JOSE": False, "logout+jwt": False, "secevent+jwt": False, "token-introspection+jwt": False, "": False,
}.items():
    add(f"N23 typ {typ}", sign(claims(), {"alg": "RS256", "kid": "k1", "typ": typ}), accepted)
for text in ['{"sub":"a","sub":"demo",', '{"exp":1,"exp":%d,' % (now + 300), '{"\\u0073ub":"admin",']:
    add("N25 twice", sign(text + json.dumps(claims())[1:]))
add("N26 two objects", sign(json.dumps(claims()) * 2))
for payload in ["null", "true", "1", '""', "[{}]", "{", "", "\ufeff" + json.dumps(claims())]:
    add(f"N27 {payload:.6}", sign(payload.encode()))
add("N28 UTF-16", sign(json.dumps(claims()).encode("utf-16")))
add("N28 Latin-1", sign(json.dumps(claims(note="é"), ensure_ascii=False).encode("latin-1")))
add("N28 a lone surrogate", sign(json.dumps(claims(sub="\ud800"))))
for name in ["EXP", "Exp", "exp ", "ｅxp"]:
    add(f"N29 {name}", sign(claims(exp="absent", **{name: now + 300})))
for exp in [now - 1, 0, -1, str(now + 300), None, True, [], {}, float(now - 5)]:
    add(f"N36 exp {exp!r}", sign(claims(exp=exp)))
add("N34 exp with a fraction", sign(claims(exp=now + 300.5)), True)
add("N34 exp with an exponent", sign(json.dumps(claims()).replace('"exp": %d' % (now + 300), '"exp": %de0' % (now + 300))), True)
for exp in ["1e400", "9" * 20, "9" * 400, "NaN", "Infinity", "0x7fffffff", "1_000", "-0"]:
    add(f"N36 exp {exp:.10}", sign(json.dumps(claims()).replace(str(now + 300), exp)))
add("N35 for two hours", sign(claims(exp=now + 7200)))
add("N39 no iat", sign(claims(iat="absent")))
add("N39 a day old, long-lived", sign(claims(iat=now - 86400)))
for nbf in [now + 60, "x", None, [now]]:
    add(f"N40 nbf {nbf}", sign(claims(nbf=nbf)))
for aud in ["absent", None, "", [], ["x"], [1], {"a": 1}, "EVENTSVC", "eventsvc ", "eventsv", "eventsvc2", ["eventsvc", 1]]:
    add(f"N41 aud {aud}", sign(claims(aud=aud)))
add("N42 aud a list", sign(claims(aud=["x", "eventsvc"])), True)
for iss in ["absent", None, issuer + "/", issuer.upper(), issuer + "#", [issuer], ""]:
    add(f"N44 iss {iss}", sign(claims(iss=iss)))
for sub in ["absent", None, "", 7, ["demo"], "a\nb", "s" * 10240]:
    add(f"N46 sub {sub!r:.20}", sign(claims(sub=sub)))
add("N47 another key", sign(claims(), by=other))
header, payload, signature = good.split(".")
add("N48 payload of another", ".".join([header, b64(json.dumps(claims(sub="admin"))), signature]))
add("N49 signature of another", ".".join([header, payload, sign(claims(sub="x")).split(".")[2]]))
add("N49 no signature", header + "." + payload + ".")
add("N51 padded header", header + "==." + payload + "." + signature)
add("N54 two parts", header + "." + payload)
add("N54 five parts", ".".join([header, payload, signature, "", ""]))
flat = jws.JWS(json.dumps(claims()))
flat.add_signature(key, None, json.dumps({"alg": "RS256", "kid": "k1"}), None)
add("N55 flattened", flat.serialize())
flat.add_signature(other, None, json.dumps({"alg": "RS256", "kid": "k1"}), None)
add("N55 general", flat.serialize())
add("N55 flattened, by Authlib", json.dumps(JsonWebSignature().serialize_json({"protected": {"alg": "RS256", "kid": "k1"}}, json.dumps(claims()), pem)))
encrypted = jwe.JWE(good, recipient=key, protected=json.dumps({"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "k1", "cty": "JWT"}))
add("N56 JWE", encrypted.serialize(compact=True))
add("N56 JWE, by Authlib", JsonWebEncryption().serialize_compact({"alg": "RSA-OAEP", "enc": "A128GCM", "zip": "DEF", "kid": "k1"}, good.encode(), public))
add("N56 a token in a token", sign(good, {"alg": "RS256", "kid": "k1", "cty": "JWT"}))
add("N57 large", sign(claims(x="y" * 17000)))
for depth in [2000, 100000]:  # the first fits into a token, and nobody reads it
    add(f"N58 {depth} deep", sign(json.dumps(claims())[:-1] + ',"x":' + "[" * depth + "]" * depth + "}"), depth == 2000)
add("N59 an ID token", sign(claims(aud="demo", nonce="n", at_hash="x", azp="demo")))
add("N60 cnf", sign(claims(cnf={"jkt": other.thumbprint()})))
add("N60 cnf x5t#S256", sign(claims(cnf={"x5t#S256": "x"})))
for scope in [1, None, {"a": 1}, ["a", 1]]:
    add(f"N61 scope {scope}", sign(claims(scope=scope)), scope is None)  # null is no claim
add("N61 scope a list", sign(claims(scope=["events:read"])), True)
json.dump(rows, sys.stdout)
