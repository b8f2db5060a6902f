package main

import (
	"encoding/json"

	"github.com/einmal/einmal/pkg/catalogue"
)

type policyCmd struct {
	JSON    bool   `name:"json" help:"Print the document that a service answers at /.well-known/idempotency-policy."`
	Service string `enum:"all,tickets,payments,deployments" default:"all" help:"Whose operations: ${enum}."`

	catalogue.Settings
}

func (p *policyCmd) Run(streams streams) error {
	entries := catalogue.All()
	if p.Service != "all" {
		entries = catalogue.Of(p.Service)
	}
	policy := catalogue.NewPolicy(p.Settings, entries)
	if !p.JSON {
		return policy.WriteTable(streams.out)
	}
	out := json.NewEncoder(streams.out)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(policy)
}
