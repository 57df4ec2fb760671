package main

import (
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// withCNI names a network plugin by its manifest, or none at all.
func withCNI(what string) (generate.Option, error) {
	if what == "none" {
		return generate.WithClusterCNIConfig(&v1alpha1.CNIConfig{CNIName: "none"}), nil
	}
	return generate.WithClusterCNIConfig(&v1alpha1.CNIConfig{CNIName: "custom", CNIUrls: []string{what}}), nil
}

// validBundle judges a bundle.
func validBundle(b *secrets.Bundle) error {
	return b.Validate()
}
