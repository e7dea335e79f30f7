package bearer

// DecodeObject is what every token and key set goes through.
var DecodeObject = decodeObject
