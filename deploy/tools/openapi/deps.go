package main

// What the second step needs, so that go mod tidy keeps it.
import (
	_ "k8s.io/api/core/v1"
	_ "k8s.io/api/events/v1"
	_ "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/kube-openapi/pkg/builder3/util"
	_ "k8s.io/kube-openapi/pkg/common"
	_ "k8s.io/kube-openapi/pkg/validation/spec"
)
