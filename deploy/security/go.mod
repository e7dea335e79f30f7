module tidings.example/deploy/security

go 1.26.0
