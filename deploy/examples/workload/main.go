// Command workload calls a service without having a secret: it fetches tokens with the assertion that its platform
// keeps in a file, such as a projected service-account token of Kubernetes.
//
//	go run ./workload http://127.0.0.1:9000/oauth2/token shop /var/run/secrets/tokens/tokensvc http://127.0.0.1:8080/version
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// assertion is a source of tokens. It reads the file for each token, because the platform replaces it.
type assertion struct {
	tokenURL, clientID, file string
}

// Token implements [oauth2.TokenSource].
func (a assertion) Token() (*oauth2.Token, error) {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return nil, err
	}
	login := clientcredentials.Config{
		TokenURL: a.tokenURL, ClientID: a.clientID, AuthStyle: oauth2.AuthStyleInParams,
		EndpointParams: url.Values{ // RFC 7523 section 2.2
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {strings.TrimSpace(string(text))},
		},
	}
	return login.Token(context.Background())
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: workload TOKEN_URL CLIENT_ID ASSERTION_FILE URL")
	}
	// The source keeps a token until shortly before it expires.
	source := oauth2.ReuseTokenSource(nil, assertion{tokenURL: os.Args[1], clientID: os.Args[2], file: os.Args[3]})
	client := oauth2.NewClient(context.Background(), source)
	resp, err := client.Get(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s", resp.Status, body)
	}
	fmt.Printf("%s\n", body)
}
