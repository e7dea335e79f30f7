-- The registrations that tokensvc reads. In production this table belongs to the application that manages clients;
-- tokensvc itself neither creates nor changes it.
CREATE TABLE clients (
    id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    client_id                text NOT NULL UNIQUE,
    client_secret            text,          -- BCrypt; NULL: the client has none
    client_name              text NOT NULL,
    scope                    text NOT NULL, -- one value
    client_secret_next       text,          -- a second good secret, while it is being changed (may be left out)
    client_secret_next_until timestamptz,   -- end of the second secret; NULL: none (may be left out)
    audience                 text[],        -- "aud" of the tokens; NULL: the client_id (may be left out)
    jwks                     jsonb,         -- public keys of a client that needs no secret (may be left out)
    public_keys              text,          -- the same in PEM (may be left out)
    assertion_issuer         text,          -- issuer whose assertions are the client's (may be left out)
    assertion_subject        text           -- their subject; NULL: the client_id (may be left out)
);

-- For demonstration only: every secret is demo-secret. The tokens are for eventsvc, which does by their scope what
-- deploy/compose/policy.yaml says.
INSERT INTO clients (client_id, client_secret, client_name, scope, audience)
SELECT client_id, '{bcrypt}$2a$10$HOCQaP0PsZmfQIYhY/VqW.FCSXSmzp8Wsnp5r1JWhWtulcqU8TU/m', client_name, scope, '{eventsvc}'
FROM (VALUES
    ('demo',        'Demo client',                 'events'),
    ('demo-reader', 'Demo client that may read',   'events:read'),
    ('demo-writer', 'Demo client that may report', 'events:write'),
    ('demo-admin',  'Demo client for everything',  'events:admin')
) AS demo (client_id, client_name, scope);

-- tokensvc connects as a role that can read this table and nothing else. The password is for demonstration only; the
-- port of the database is not published.
CREATE ROLE tokensvc LOGIN PASSWORD 'tokensvc' CONNECTION LIMIT 20;
ALTER ROLE tokensvc SET default_transaction_read_only = on;
GRANT SELECT ON clients TO tokensvc;
