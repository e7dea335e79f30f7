package event

// Reasons of the events that a mirror makes of changes of objects.
const (
	ObjectCreated = "ObjectCreated"
	ObjectChanged = "ObjectChanged"
	ObjectDeleted = "ObjectDeleted"
)
