package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const configLong = `Prints a settings file with every setting: what it means, its default, and what it
may be. All of it is commented out, so that it changes nothing until something is
taken in:

    lakefs-mount config > lake.yaml
    lakefs-mount mount --config lake.yaml SOURCE MOUNTPOINT

What is in force in a running mount, and where each value came from, is in its
.lakefs/config.json, which its owner alone can read.`

func (p *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "config",
		Short:             "Print a commented settings file",
		Long:              configLong,
		Args:              arguments(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			p.printf("%s", settings.ExampleFile())
			return nil
		},
	}
}

// configValue is one setting in config.json.
type configValue struct {
	Value  any             `json:"value"` // null: nothing was chosen
	Source settings.Source `json:"source"`
}

// mountConfig is what .lakefs/config.json has.
type mountConfig struct {
	Source      string                 `json:"source"`
	MountPoint  string                 `json:"mountpoint"`
	Settings    map[string]configValue `json:"settings"`
	Secrets     map[string]string      `json:"secrets"`     // name: AWS profile
	Environment map[string]string      `json:"environment"` // of the AWS SDK and of HTTP
}

// configJSON tells what is in force in the mount of r from its start to its end.
// Nothing secret is in it: what may be is masked.
func configJSON(r *request, l *lake, memory int64) ([]byte, error) {
	c := mountConfig{
		Source: r.source.String(), MountPoint: r.mountpoint,
		Settings: map[string]configValue{}, Secrets: r.settings.Secrets, Environment: shownEnvironment(r.environ),
	}
	values := inForce(r, l, memory)
	for s := range settings.All() {
		v := configValue{Value: maskedValue(s.Value(&values)), Source: r.settings.Sources[s.Name]}
		if v.Source == settings.FromFlag && r.options {
			v.Source = settings.FromOption
		}
		if v.Source == settings.FromDefault && v.Value != nil && slices.Contains([]string{"region", "endpoint-url", "glue-endpoint-url"}, s.Name) {
			v.Source = settings.FromAWS
		}
		c.Settings[s.Name] = v
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("settings in force: %w", err)
	}
	return b.Bytes(), nil
}

// inForce are the settings with what the program chose by itself where nothing was
// given. memory is the budget, in bytes.
func inForce(r *request, l *lake, memory int64) settings.Values {
	v := r.settings.Values
	uid, gid := orUint(v.UID, os.Geteuid()), orUint(v.GID, os.Getegid())
	v.UID, v.GID = &uid, &gid
	v.MemoryLimit, v.StagedMax = memory, l.stagedMax
	if l.disk != nil {
		v.CacheSize = l.disk.Stats().Limit
	}
	if r.source.onS3() {
		v.EndpointURL = r.endpoint
	}
	if r.source.glue {
		v.GlueEndpointURL, v.Region = r.glueEndpoint, r.aws.main.Region
	}
	return v
}

// maskedValue masks what may be secret in a URL.
func maskedValue(value any) any {
	switch v := value.(type) {
	case string:
		return settings.Masked(v, false)
	case []string:
		masked := make([]string, 0, len(v))
		for _, one := range v {
			masked = append(masked, settings.Masked(one, false))
		}
		return masked
	}
	return value
}

// shownEnvironment are the variables that the AWS SDK and HTTP look at. Those of the
// SDK of which it is not known that they hold no secret are there without their value.
func shownEnvironment(environ []string) map[string]string {
	shown := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case value == "":
		case strings.HasSuffix(strings.ToLower(name), "_proxy"):
			shown[name] = settings.Masked(value, true)
		case strings.HasPrefix(name, "AWS_ENDPOINT_URL"):
			shown[name] = settings.Masked(value, false)
		case slices.Contains(plainVariables(), name):
			shown[name] = value
		case strings.HasPrefix(name, "AWS_"):
			shown[name] = "****"
		}
	}
	return shown
}

// plainVariables are those of the AWS SDK that hold no secret.
func plainVariables() []string {
	return []string{
		"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_CA_BUNDLE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_EC2_METADATA_DISABLED",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE", "AWS_USE_FIPS_ENDPOINT",
		"AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}
