package main

import (
	"encoding/json"

	"github.com/einmal/einmal/pkg/catalogue"
)

type policyCmd struct {
	JSON bool `name:"json" help:"Print the document that a service answers at /.well-known/idempotency-policy."`

	catalogue.Settings
}

func (p *policyCmd) Run(streams streams) error {
	policy := catalogue.NewPolicy(p.Settings, catalogue.All())
	if !p.JSON {
		return policy.WriteTable(streams.out)
	}
	out := json.NewEncoder(streams.out)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(policy)
}
