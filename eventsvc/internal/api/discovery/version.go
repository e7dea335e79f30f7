package discovery

import (
	"net/http"
	"runtime"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/version"
)

// The Kubernetes minor version whose Events API this is. Clients warn when it
// is far from their own.
const (
	apiMajor = "1"
	apiMinor = "37"
)

// serveVersion answers with the version of the API and, as build metadata, of this
// program.
func serveVersion(c echo.Context) error {
	return c.JSONPretty(http.StatusOK, version.Info{
		Major: apiMajor, Minor: apiMinor,
		EmulationMajor: apiMajor, EmulationMinor: apiMinor,
		MinCompatibilityMajor: apiMajor, MinCompatibilityMinor: apiMinor,
		GitVersion: "v" + apiMajor + "." + apiMinor + ".0+tidings",
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}, "  ")
}
