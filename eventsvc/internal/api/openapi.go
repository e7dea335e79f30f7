package api

import "github.com/labstack/echo/v4"

type documents struct{}

func (s *Server) newDocuments() (documents, error) { return documents{}, nil }
func (s *Server) routeOpenAPI(e *echo.Echo) {}
