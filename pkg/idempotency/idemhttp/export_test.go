package idemhttp

// Decode reads a body into a command as Call.Decode does.
var Decode = decode
