package objectchange

import (
	"regexp"
	"slices"
	"strings"
)

// secretNames are parts of the names of fields, variables, labels and annotations whose values are secrets by
// convention, in lower case and without separators; secretEnds are their ends.
var (
	secretNames = []string{
		"passw", "passphrase", "pwd", "secret", "token", "credential", "bearer", "apikey", "accesskey", "privatekey", "signingkey", "encryptionkey",
		"authkey", "authstring", "authheader", "cert", "connectionstring", "connstr", "cookie", "lastapplied",
	}
	secretEnds = []string{"auth", "authorization", "dsn", "salt"}
	separators = strings.NewReplacer("-", "", "_", "", ".", "")
)

// secretTexts matches texts that hold a secret whatever their name is: assignments, URLs with a password, tokens, keys.
var secretTexts = regexp.MustCompile(`(?i:(?:passw|passphrase|pwd|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|auth)[\w.-]*["']?\s*[=:]\s*\S)|` +
	`(?i:\b(?:bearer|basic)\s+\S{6})|://[^/\s:@]*:[^/\s@]+@|eyJ[\w-]{10,}\.|-----BEGIN|\b(?:AKIA|ASIA)[0-9A-Z]{12}|\bgh[pousr]_\w{20}|\bgithub_pat_|\bglpat-|\bxox[a-z]-|\bsk-[\w-]{16}|\bAIza[\w-]{20}`)

// secretSigns are in lower case; each text that secretTexts matches has one of them. Looking for them costs less.
var secretSigns = []string{
	"passw", "passphrase", "pwd", "secret", "token", "credential", "key", "auth", "bearer", "basic", "@", "eyj", "-----begin", "akia", "asia", "ghp_",
	"gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk-", "aiza",
}

// references are fields that name where a secret is.
var references = []string{"secretName", "secretRef", "secretKeyRef", "imagePullSecrets", "certificateRefs", "existingSecret", "secretClass"}

// sight says how the values below a field are seen.
type sight struct{ secret, reference bool }

// sightOf returns how a field is seen that has the name of a secret, or of where one is kept.
func sightOf(name string) sight {
	if slices.Contains(references, name) {
		return sight{reference: true}
	}
	return sight{secret: secretName(name)}
}

// secretName reports whether a field has the name of a secret, and is no setting about secrets.
func secretName(name string) bool {
	lower := strings.ToLower(name)
	word := separators.Replace(lower)
	if !has(word, strings.Contains, secretNames) && !has(word, strings.HasSuffix, secretEnds) {
		return false
	}
	switch name {
	case "secret", "secrets", "serviceAccountToken", "certificate", "certificates", "projected":
		return false
	}
	return !has(lower, strings.HasSuffix, []string{"name", "ref", "refs", "namespace", "expirationseconds"}) && !strings.HasPrefix(lower, "cert-manager.io/")
}

func has(text string, in func(string, string) bool, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return in(text, part) })
}

// secretText reports whether a text has the form of a secret.
func secretText(text string) bool {
	return has(strings.ToLower(text), strings.Contains, secretSigns) && secretTexts.MatchString(text)
}

// secretFlag reports whether an argument of a program is followed by a secret, as --password is.
func secretFlag(argument any) bool {
	flag, ok := argument.(string)
	return ok && strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && secretName(flag)
}
