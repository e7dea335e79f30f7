package discovery

// parameter describes a parameter of a path or a query.
func (o openAPI) parameter(name, in string) map[string]any {
	about := parameters()[name]
	out := map[string]any{"name": name, "in": in, "description": about.text}
	if in == "path" {
		out["required"] = true
	}
	if o.version == 2 {
		out["type"], out["uniqueItems"] = about.kind, true
	} else {
		out["schema"] = map[string]any{"type": about.kind, "uniqueItems": true}
	}
	return out
}

type about struct{ kind, text string }

// parameters explains every parameter.
func parameters() map[string]about {
	return map[string]about{
		"name":      {"string", "Name of the event."},
		"namespace": {"string", "Namespace of the events."},
		"pretty":    {"string", "Indent JSON answers if true; the default is to do so for browsers and command-line tools."},

		"allowWatchBookmarks":  {"boolean", "Let a watch carry BOOKMARK events, which say how far it has come."},
		"continue":             {"string", "Token of the previous page: go on where it ended, at the same version."},
		"fieldSelector":        {"string", "Only events whose fields have these values. Comma means and; =, == and != compare."},
		"labelSelector":        {"string", "Only events whose labels meet these requirements."},
		"limit":                {"integer", "At most so many events in one answer; metadata.continue is the token of the next page."},
		"resourceVersion":      {"string", "Which version to read, or after which to watch."},
		"resourceVersionMatch": {"string", "How resourceVersion is meant: Exact or NotOlderThan."},
		"shardSelector":        {"string", "Accepted, and without effect: a list or watch is never a shard."},
		"sendInitialEvents":    {"boolean", "Begin a watch with the state there is, and a bookmark behind it."},
		"timeoutSeconds":       {"integer", "End the call after so many seconds."},
		"watch":                {"boolean", "Stream changes instead of listing."},

		"dryRun":          {"string", "All: do everything but store the result."},
		"fieldManager":    {"string", "Who is noted as the manager of the fields that this changes."},
		"fieldValidation": {"string", "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."},
		"force":           {"boolean", "Take fields over from other managers when applying."},

		"gracePeriodSeconds": {"integer", "Accepted, and without effect on events."},
		"ignoreStoreReadErrorWithClusterBreakingPotential": {"boolean", "Without effect on one event; refused for a collection."},
		"orphanDependents":  {"boolean", "Deprecated. Without effect on events but for the code of the answer: 202 if false and finalizers hold the event."},
		"propagationPolicy": {"string", "Orphan, Background or Foreground: accepted, and without effect on events."},
	}
}
