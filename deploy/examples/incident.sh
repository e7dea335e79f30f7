#!/bin/sh
# Prints a day of a small cluster as events, one JSON object per line, for `eventsvc record -f -`. It ends on 23 November 2026 at
# 05:30 UTC. Forty minutes before, a new version of the deployment checkout is rolled out, whose image does not exist. It always
# prints the same events.
awk -v now=1795411800 '
# stamp writes seconds since 1970 as RFC 3339. Years have 365.2425 days, and begin in March so that the leap day is the last.
function stamp(t,   days, era, doe, yoe, doy, mp, d, m, y) {
	days = int(t / 86400) + 719468; t = t % 86400
	era = int(days / 146097); doe = days - era * 146097
	yoe = int((doe - int(doe / 1460) + int(doe / 36524) - int(doe / 146096)) / 365)
	doy = doe - (365 * yoe + int(yoe / 4) - int(yoe / 100)); mp = int((5 * doy + 2) / 153)
	d = doy - int((153 * mp + 2) / 5) + 1; m = mp < 10 ? mp + 3 : mp - 9; y = yoe + era * 400 + (m <= 2)
	return sprintf("%04d-%02d-%02dT%02d:%02d:%02d.000000Z", y, m, d, int(t / 3600), int(t % 3600 / 60), t % 60)
}
# event prints one that began at a time and was seen count times until another.
function event(at, type, reason, kind, name, ns, by, note, count, until) {
	printf "{\"eventTime\":\"%s\",\"type\":\"%s\",\"reason\":\"%s\",\"action\":\"%s\",\"note\":\"%s\",\"reportingController\":\"%s\",", stamp(at), type, reason, reason, note, by
	if (count > 1) printf "\"series\":{\"count\":%d,\"lastObservedTime\":\"%s\"},", count, stamp(until)
	printf "\"regarding\":{\"kind\":\"%s\",\"name\":\"%s\",\"namespace\":\"%s\"},\"metadata\":{\"namespace\":\"%s\"}}\n", kind, name, ns, ns
}
# started prints what a pod reports that starts as it should.
function started(at, pod, ns, image) {
	event(at, "Normal", "Scheduled", "Pod", pod, ns, "default-scheduler", "Successfully assigned " ns "/" pod " to node-" 1 + at % 3)
	event(at + 1, "Normal", "Pulled", "Pod", pod, ns, "kubelet", "Container image " image " already present on machine")
	event(at + 2, "Normal", "Started", "Pod", pod, ns, "kubelet", "Started container main")
}
BEGIN {
	for (ago = 24 * 3600; ago > 0; ago -= 1800) {
		at = now - ago
		event(at, "Normal", "SuccessfulCreate", "CronJob", "report", "mail", "cronjob-controller", "Created job report-" at / 60)
		started(at + 3, "report-" at / 60, "mail", "report:2.0")
		event(at + 60, "Normal", "Completed", "Job", "report-" at / 60, "mail", "job-controller", "Job completed")
		if (ago % 7200 == 0) event(at + 300, "Warning", "Unhealthy", "Pod", "imap-0", "mail", "kubelet", "Readiness probe failed: context deadline exceeded", 2, at + 330)
		if (ago % 14400 == 0) started(at + 600, "web-" ago / 14400, "shop", "web:3.1")
	}
	at = now - 40 * 60
	event(at, "Normal", "ScalingReplicaSet", "Deployment", "checkout", "shop", "deployment-controller", "Scaled up replica set checkout-7d9f to 3")
	for (n = 0; n < 3; n++) {
		pod = "checkout-7d9f-" n
		event(at + 1 + n, "Normal", "SuccessfulCreate", "ReplicaSet", "checkout-7d9f", "shop", "replicaset-controller", "Created pod: " pod)
		event(at + 2 + n, "Normal", "Scheduled", "Pod", pod, "shop", "default-scheduler", "Successfully assigned shop/" pod " to node-" n + 1)
		event(at + 4 + n, "Warning", "Failed", "Pod", pod, "shop", "kubelet", "Failed to pull image checkout:1.4.2: not found", 5, at + 180 + n)
		event(at + 20 + n, "Warning", "BackOff", "Pod", pod, "shop", "kubelet", "Back-off pulling image checkout:1.4.2", 30, now - 60 + n)
	}
	event(at + 600, "Warning", "ProgressDeadlineExceeded", "Deployment", "checkout", "shop", "deployment-controller", "ReplicaSet checkout-7d9f has timed out progressing")
}'
