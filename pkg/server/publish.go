package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"go.yaml.in/yaml/v4"

	"github.com/einmal/einmal/pkg/apidoc"
	"github.com/einmal/einmal/pkg/problem"
)

// PublishJSON answers GET path with a document that does not change while the process lives, such as the policy. The path
// should be one of the public ones.
func (s *Server) PublishJSON(path string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	s.echo.GET(path, func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, body)
	})
	return nil
}

// PublishOpenAPI answers GET /openapi.json with the service's openapi.yaml, and GET /docs with a page made of it. The page is made when
// somebody first asks for it: few processes are ever asked, and to make it takes longer than all else that a start does.
func (s *Server) PublishOpenAPI(document []byte) error {
	var parsed map[string]any // refuses members that are not strings, such as a status code without quotation marks
	if err := yaml.Unmarshal(document, &parsed); err != nil {
		return fmt.Errorf("publish openapi.yaml: %w", err)
	}
	makePage := sync.OnceValues(func() ([]byte, error) { return apidoc.Page(document) })
	s.echo.GET("/docs", func(c echo.Context) error {
		page, err := makePage()
		if err != nil {
			return fmt.Errorf("answer /docs: %w", err)
		}
		c.Response().Header().Set(echo.HeaderContentSecurityPolicy, apidoc.CSP)
		return c.HTMLBlob(http.StatusOK, page)
	})
	return s.PublishJSON("/openapi.json", parsed)
}

// addProblemPages answers the type of every problem with a page about it.
func (s *Server) addProblemPages() {
	s.echo.GET(problem.PagePath+":code", func(c echo.Context) error {
		html, ok := problem.Page(problem.Code(c.Param("code")))
		if !ok {
			return problem.New(problem.NotFound, "There is no problem with the code "+strings.ToValidUTF8(c.Param("code"), "?")+".")
		}
		c.Response().Header().Set(echo.HeaderContentSecurityPolicy, problem.PageCSP)
		return c.HTMLBlob(http.StatusOK, html)
	})
}
