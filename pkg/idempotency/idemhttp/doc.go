// Package idemhttp is the HTTP edge of package idempotency for echo: it reads a write request strictly, and writes what became
// of it the way docs/contract.md says.
//
// A handler stays a plain echo handler. It begins a [Call] (key, then media type, size and syntax of the body), decodes its
// command from it, hands call.Request to whatever executes it, and writes the result with [Write]:
//
//	func (a api) createTicket(c echo.Context) error {
//		call, err := idemhttp.Begin(c, caller(c))
//		if err != nil {
//			return err
//		}
//		command := newCreateTicket()
//		if err := call.Decode(command); err != nil {
//			return err
//		}
//		result, err := a.commands.createTicket(c.Request().Context(), call.Request(catalogue.TicketCreate, command), command)
//		if err != nil {
//			return err
//		}
//		return idemhttp.Write(c, result)
//	}
//
// Errors are *problem.Problem or wrap the sentinels of packages idempotency and database; the server's error handler answers
// them.
//
// Answers point to GET /v1/operations/:id ([Operations]) and to the page of each problem, GET /problems/:code
// (problem.Page): mount both. [StoreProblem] is for the error handler of an application that does not use package server.
package idemhttp
