package problem_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/einmal/einmal/pkg/problem"
)

// A problem tells a program what to do without making it read prose.
func Example() {
	p := problem.New(problem.OrderBusy, "payment pay_1 of this order is pending")
	p.OperationID = "op_1"

	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	_ = e.Encode(p)
	// Output:
	// {
	//   "type": "/problems/order-busy",
	//   "title": "Order has a live payment",
	//   "status": 409,
	//   "detail": "payment pay_1 of this order is pending",
	//   "code": "order-busy",
	//   "operation_id": "op_1",
	//   "effect": "none",
	//   "retry": "same_key",
	//   "retry_after_seconds": 5,
	//   "next_action": "retry_same_key"
	// }
}

// A lost answer to COMMIT is the same problem as a database that is away, but the effect is not known.
func ExampleNew_unknownEffect() {
	p := problem.New(problem.StoreUnavailable, "The answer to a commit was lost.")
	p.Effect = problem.EffectUnknown

	w := httptest.NewRecorder()
	p.Write(w)
	fmt.Println(w.Code, w.Header().Get("Content-Type"), "Retry-After:", w.Header().Get("Retry-After"))
	fmt.Println(p.Effect, p.Retry, p.NextAction)
	// Output:
	// 503 application/problem+json Retry-After: 1
	// unknown same_key retry_same_key
}

// A caller learns everything that is wrong with a body at once.
func ExampleInvalid() {
	p := problem.Invalid(
		problem.Violation{Pointer: "/title", Detail: "is missing"},
		problem.Violation{Pointer: "/priority", Detail: "is none of low, normal, high, urgent"},
	)
	fmt.Println(p.Status, p.Code)
	for _, v := range p.Errors {
		fmt.Println(v.Pointer, v.Detail)
	}
	// Output:
	// 422 validation-failed
	// /title is missing
	// /priority is none of low, normal, high, urgent
}
