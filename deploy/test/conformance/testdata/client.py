"""What a Python program may do with events, against a running server.

Usage: client.py URL CA-FILE TOKEN. Ends with code 0 when all went well.
"""

import datetime
import json
import sys
import threading

from kubernetes import client, dynamic, watch
from kubernetes.client.rest import ApiException


def configuration(url, ca_file, token):
    c = client.Configuration()
    c.host, c.ssl_ca_cert = url, ca_file
    c.api_key = {"authorization": "Bearer " + token}
    return c


def event(name, namespace, labels=None):
    return client.EventsV1Event(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        event_time=datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc),
        reporting_controller="example.com/python", reporting_instance="python-1",
        action="Act", reason="Because", type="Normal", note="hello",
        regarding=client.V1ObjectReference(kind="Pod", name="p1", namespace=namespace))


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print("ok", what)


def refused(status, reason, call):
    try:
        call()
    except ApiException as e:
        check(e.status == status and reason in e.body, "refused: %s %s" % (status, reason))
        return
    raise AssertionError("not refused: %s %s" % (status, reason))


def typed(api, ns):
    created = api.create_namespaced_event(ns, event("a", ns, {"x": "1"}))
    check(created.metadata.uid and created.note == "hello", "create")
    check(api.read_namespaced_event("a", ns).metadata.uid == created.metadata.uid, "read")
    refused(409, "AlreadyExists", lambda: api.create_namespaced_event(ns, event("a", ns)))
    refused(404, "NotFound", lambda: api.read_namespaced_event("none", ns))
    bad = event("b", ns)
    bad.type = "Odd"
    refused(422, "Invalid", lambda: api.create_namespaced_event(ns, bad))

    patched = api.patch_namespaced_event("a", ns, {"metadata": {"labels": {"x": "2"}}})
    check(patched.metadata.labels["x"] == "2", "patch")
    patched.metadata.labels["x"] = "3"
    replaced = api.replace_namespaced_event("a", ns, patched)
    check(replaced.metadata.labels["x"] == "3", "replace")
    refused(409, "Conflict", lambda: api.replace_namespaced_event("a", ns, patched))

    for name in ("b", "c"):
        api.create_namespaced_event(ns, event(name, ns, {"x": "1"}))
    page = api.list_namespaced_event(ns, limit=2)
    check([i.metadata.name for i in page.items] == ["a", "b"] and page.metadata.remaining_item_count == 1, "first page")
    rest = api.list_namespaced_event(ns, limit=2, _continue=page.metadata._continue)
    check([i.metadata.name for i in rest.items] == ["c"], "second page")
    selected = api.list_event_for_all_namespaces(label_selector="x=1", field_selector="regarding.name=p1")
    check([i.metadata.name for i in selected.items] == ["b", "c"], "selectors")
    return page.metadata.resource_version


def watched(api, ns, version):
    seen = []
    w = watch.Watch()
    timer = threading.Timer(0, lambda: (
        api.patch_namespaced_event("b", ns, {"metadata": {"labels": {"x": "9"}}}),
        api.delete_namespaced_event("b", ns)))
    timer.start()
    for e in w.stream(api.list_namespaced_event, ns, resource_version=version, timeout_seconds=30):
        seen.append((e["type"], e["object"].metadata.name))
        if len(seen) == 2:
            w.stop()
    timer.join()
    check(seen == [("MODIFIED", "b"), ("DELETED", "b")], "watch: %s" % seen)


def deleted(api, ns):
    status = api.delete_namespaced_event("a", ns)
    check(status.status == "Success" and status.details.name == "a", "delete")
    status = api.delete_collection_namespaced_event(ns)
    check(status.status == "Success", "delete collection")
    check(api.list_namespaced_event(ns).items == [], "nothing is left")


def core(api, events, ns):
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    api.create_namespaced_event(ns, client.CoreV1Event(
        metadata=client.V1ObjectMeta(name="old"), message="hello", reason="Because", type="Normal", count=1,
        first_timestamp=now, last_timestamp=now, source=client.V1EventSource(component="python"),
        involved_object=client.V1ObjectReference(kind="Pod", name="p1", namespace=ns)))
    found = api.list_namespaced_event(ns, field_selector="source=python,involvedObject.kind=Pod")
    check([i.message for i in found.items] == ["hello"], "core")
    # This client's model of the other group wants an eventTime, with any server.
    try:
        events.list_namespaced_event(ns)
    except ValueError:
        check(True, "old events in the events group are a ValueError")
    else:
        raise AssertionError("an old event was listed in the events group")
    api.delete_collection_namespaced_event(ns)


def untyped(api_client, ns):
    d = dynamic.DynamicClient(api_client)
    events = d.resources.get(api_version="events.k8s.io/v1", kind="Event")
    body = api_client.sanitize_for_serialization(event("dyn", ns))
    body.update(apiVersion="events.k8s.io/v1", kind="Event")
    created = events.create(body=body, namespace=ns)
    check(created.note == "hello", "dynamic create")
    check([i.metadata.name for i in events.get(namespace=ns).items] == ["dyn"], "dynamic list")
    events.patch(name="dyn", namespace=ns, body={"metadata": {"labels": {"x": "1"}}},
                 content_type="application/merge-patch+json")
    check(events.get(name="dyn", namespace=ns).metadata.labels.x == "1", "dynamic patch")
    # This version of the client sends text as it is and knows no other way to apply.
    config = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "dyn", "labels": {"y": "2"}}}
    applied = events.server_side_apply(body=json.dumps(config), name="dyn", namespace=ns, field_manager="python")
    check(applied.metadata.labels.y == "2", "dynamic apply")
    events.delete(name="dyn", namespace=ns)


def main(url, ca_file, token):
    with client.ApiClient(configuration(url, ca_file, token)) as api_client:
        check(client.VersionApi(api_client).get_code().major == "1", "version")
        api, ns = client.EventsV1Api(api_client), "python"
        version = typed(api, ns)
        version = api.list_namespaced_event(ns).metadata.resource_version
        watched(api, ns, version)
        deleted(api, ns)
        core(client.CoreV1Api(api_client), api, ns)
        untyped(api_client, ns)


if __name__ == "__main__":
    main(*sys.argv[1:])
