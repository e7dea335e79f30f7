-- The database of eventsvc: one role owns the schema, the other serves. The passwords are for demonstration only.
CREATE ROLE events_owner LOGIN PASSWORD 'events-owner';
CREATE ROLE eventsvc LOGIN PASSWORD 'eventsvc';
GRANT pg_read_all_stats TO eventsvc; -- it says whether the standbys are connected
CREATE DATABASE events OWNER events_owner ENCODING 'UTF8' TEMPLATE template0;
