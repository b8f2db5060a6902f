package apidoc

import (
	"fmt"
	"slices"
	"strings"
)

// schema is what is read of a JSON Schema.
type schema struct {
	Ref                  string `yaml:"$ref"`
	Type                 string
	Description          string
	Properties           ordered[*schema]
	Required             []string
	Items                *schema
	AdditionalProperties any       `yaml:"additionalProperties"` // a schema or false
	OneOf                []*schema `yaml:"oneOf"`
	Enum                 []any
	Const                any
	Default              any
	Pattern              string
	MinLength            *int `yaml:"minLength"`
	MaxLength            *int `yaml:"maxLength"`
	Minimum              *int
	Maximum              *int
	MaxItems             *int `yaml:"maxItems"`
	MaxProperties        *int `yaml:"maxProperties"`
}

// Link is the name of the schema that this one refers to, itself or in its items; empty: none.
func (s *schema) Link() string {
	if s.Ref == "" && s.Items != nil {
		return s.Items.Link()
	}
	return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
}

// Kind is what stands before the link: the type, or that it is a list.
func (s *schema) Kind() string {
	switch {
	case s.Ref != "":
		return ""
	case s.Items != nil:
		return strings.TrimSpace("list of " + s.Items.Kind())
	case s.Type == "" && (s.Enum != nil || s.Const != nil):
		return "string"
	}
	return s.Type
}

// Needs reports whether a member must be there.
func (s *schema) Needs(name string) bool { return slices.Contains(s.Required, name) }

// Limits are the rules that a value keeps.
func (s *schema) Limits() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Const != nil {
		add("always %v", s.Const)
	}
	if s.Enum != nil {
		add("one of %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Enum)), ", "), "[]"))
	}
	if s.Items != nil && s.Items.Ref == "" {
		all = append(all, s.Items.Limits()...)
	}
	between(add, s.MinLength, s.MaxLength, " characters")
	between(add, s.Minimum, s.Maximum, "")
	between(add, nil, s.MaxItems, " items")
	between(add, nil, s.MaxProperties, " members")
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Default != nil && fmt.Sprint(s.Default) != "" && fmt.Sprint(s.Default) != "map[]" {
		add("default %v", s.Default)
	}
	if s.AdditionalProperties == false {
		add("no other members")
	}
	return all
}

func between(add func(string, ...any), least, most *int, what string) {
	switch {
	case least != nil && most != nil:
		add("%d to %d%s", *least, *most, what)
	case least != nil && *least == 1 && what != "":
		add("not empty")
	case least != nil:
		add("at least %d%s", *least, what)
	case most != nil:
		add("at most %d%s", *most, what)
	}
}
