// Package outboxhttp is what every service with effects answers about them: cancel and reconcile of an operation, and the
// reviews in which a person decides what no machine can. Each of these writes is an operation of its own, with a key.
package outboxhttp
