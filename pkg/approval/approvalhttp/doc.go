// Package approvalhttp answers about approvals: the list, one question, and the decision of a person.
package approvalhttp
