package bearer

// DecodeObject decodes a JSON object as it is done for every token and key set.
var DecodeObject = decodeObject
