module tidings.example/deploy/local

go 1.26.0
