# Reads what go test -v prints of one package after the other. Of a package that passes it prints the last line, of one that
# fails all but the tests that passed. It fails if a test was skipped that .ci/skips does not list: nobody reads why.
BEGIN {
  while ((getline line < ".ci/skips") > 0)
    if (split(line, words) > 1 && words[1] != "#") allowed[words[1]] = 1
}
/^ *=== (RUN|PAUSE|CONT)/ || /^ *--- PASS: / { next }
{ said = said $0 "\n" }
/^ *--- SKIP: / {
  name = $3
  sub(/\/.*/, "", name)
  if (!(name in allowed)) skipped = skipped reason "\n" $0 "\n"
}
{ reason = $0 }
/^(ok|\?) *\t/ { print; said = ""; fflush() }
/^FAIL\t/ || /^== / { printf "%s", said; said = ""; fflush() }
END {
  printf "%s", said
  if (skipped) {
    printf "skipped, though CI=true, and not listed in .ci/skips:\n%s", skipped
    exit 1
  }
}
