package apidoc

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document is what is read of an OpenAPI document.
type document struct {
	Info struct {
		Title       string
		Version     string
		Summary     string
		Description string
	}
	Tags []struct {
		Name        string
		Description string
	}
	Paths      ordered[ordered[*operation]] // by path, then by method
	Components struct {
		SecuritySchemes ordered[struct{ Description string }] `yaml:"securitySchemes"`
		Parameters      ordered[*parameter]
		Headers         ordered[*header]
		Responses       ordered[*response]
		Schemas         ordered[*schema]
	}

	// Everywhere are the headers that every answer has: they are told once.
	Everywhere ordered[*header] `yaml:"-"`
}

// ordered is a mapping in the order in which it is written.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		m := member[T]{Name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

type operation struct {
	ID          string `yaml:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Security    *[]any // empty: needs no token
	Parameters  []*parameter
	RequestBody *body `yaml:"requestBody"`
	Responses   ordered[*response]
}

// Public reports whether the operation needs no token.
func (o *operation) Public() bool { return o.Security != nil && len(*o.Security) == 0 }

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name        string
	In          string
	Required    bool
	Description string
	Schema      *schema
}

type body struct {
	Description string
	Content     ordered[media]
}

type media struct {
	Schema  *schema
	Example any
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string
	Schema      *schema
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Headers     ordered[*header]
	Content     ordered[media]
}

// resolve puts the components in place of the references to them. Schemas stay references: the page links to them.
func (d *document) resolve() error {
	for _, o := range d.operations() {
		for i, p := range o.Parameters {
			if err := follow(p.Ref, "parameters", d.Components.Parameters, &o.Parameters[i]); err != nil {
				return err
			}
		}
		for i, r := range o.Responses {
			if err := follow(r.Value.Ref, "responses", d.Components.Responses, &o.Responses[i].Value); err != nil {
				return err
			}
			for j, h := range o.Responses[i].Value.Headers {
				if err := follow(h.Value.Ref, "headers", d.Components.Headers, &o.Responses[i].Value.Headers[j].Value); err != nil {
					return err
				}
			}
		}
	}
	d.Everywhere = d.commonHeaders()
	return nil
}

func (d *document) operations() (all []*operation) {
	for _, path := range d.Paths {
		for _, method := range path.Value {
			all = append(all, method.Value)
		}
	}
	return all
}

// follow puts the component that ref names into place; without a ref, place holds the thing itself.
func follow[T any](ref, kind string, components ordered[T], place *T) error {
	if ref == "" {
		return nil
	}
	name, ok := strings.CutPrefix(ref, "#/components/"+kind+"/")
	for _, c := range components {
		if ok && c.Name == name {
			*place = c.Value
			return nil
		}
	}
	return fmt.Errorf("%s leads nowhere", ref)
}

func (d *document) commonHeaders() (common ordered[*header]) {
	first := true
	for _, o := range d.operations() {
		for _, r := range o.Responses {
			if first {
				common, first = slices.Clone(r.Value.Headers), false
			}
			common = slices.DeleteFunc(common, func(h member[*header]) bool { return !r.Value.Headers.has(h.Name) })
		}
	}
	return common
}

func (o ordered[T]) has(name string) bool {
	return slices.ContainsFunc(o, func(m member[T]) bool { return m.Name == name })
}

// Own are the headers of a response that not every answer has.
func (d *document) Own(r *response) (own ordered[*header]) {
	for _, h := range r.Headers {
		if !d.Everywhere.has(h.Name) {
			own = append(own, h)
		}
	}
	return own
}
