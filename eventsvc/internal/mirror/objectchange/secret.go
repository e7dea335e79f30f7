package objectchange

import (
	"regexp"
	"slices"
	"strings"
)

// secretNames matches names of fields, variables, labels and annotations whose values are secrets by convention.
var secretNames = regexp.MustCompile(`(?i)passw|passphrase|pwd|secret|token|credential|bearer|api[-_.]?key|access[-_.]?key|private[-_.]?key|` +
	`signing[-_.]?key|encryption[-_.]?key|auth(?:orization)?$|auth[-_.]?(?:key|string|header)|cert|dsn$|connection[-_.]?string|conn[-_.]?str|cookie|salt$|last-applied`)

// secretTexts matches texts that hold a secret whatever their name is: assignments, URLs with a password, tokens, keys.
var secretTexts = regexp.MustCompile(`(?i:(?:passw|passphrase|pwd|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|auth)[\w.-]*["']?\s*[=:]\s*\S)|` +
	`(?i:\b(?:bearer|basic)\s+\S{6})|://[^/\s:@]*:[^/\s@]+@|eyJ[\w-]{10,}\.|-----BEGIN|\b(?:AKIA|ASIA)[0-9A-Z]{12}|\bgh[pousr]_\w{20}|\bgithub_pat_|\bglpat-|\bxox[a-z]-|\bsk-[\w-]{16}|\bAIza[\w-]{20}`)

// references are fields that name where a secret is.
var references = []string{"secretName", "secretRef", "secretKeyRef", "imagePullSecrets", "certificateRefs", "existingSecret", "secretClass"}

// secretName reports whether a field has the name of a secret, and is not the name of where one is kept.
func secretName(steps []string, name string) bool {
	if slices.ContainsFunc(steps, func(s string) bool { return slices.Contains(references, s) }) {
		return false
	}
	for _, s := range steps { // what is below a secret is one
		if s[0] != '[' && secretNames.MatchString(s) && !structural(s) {
			return true
		}
	}
	return secretNames.MatchString(name) && !structural(name)
}

// structural reports whether a name that speaks of a secret is that of a setting about secrets.
func structural(name string) bool {
	switch name {
	case "secret", "secrets", "serviceAccountToken", "certificate", "certificates", "projected":
		return true
	}
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, "name") || strings.HasSuffix(lower, "ref") || strings.HasSuffix(lower, "refs") || strings.HasSuffix(lower, "namespace") ||
		strings.HasSuffix(lower, "expirationseconds") || strings.HasPrefix(lower, "cert-manager.io/")
}

// secretText reports whether a text has the form of a secret.
func secretText(text string) bool { return secretTexts.MatchString(text) }

// secretFlag reports whether an argument of a program is followed by a secret, as --password is.
func secretFlag(argument any) bool {
	flag, ok := argument.(string)
	return ok && strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && secretNames.MatchString(flag)
}
