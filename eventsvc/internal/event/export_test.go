package event

// Selectable returns how many fields a field selector of a view may name.
func Selectable(v View) int { return len(selectable(v)) }
