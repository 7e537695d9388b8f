package settings

import (
	"errors"
	"path"
	"time"
)

// catalog: which part of a catalog is served, what of it is written, and what of Glue.
func catalog() []Setting {
	all := []Setting{
		{
			Name: "glue-endpoint-url", Type: "URL", Usage: "a catalog that speaks AWS Glue, instead of AWS: http://127.0.0.1:5000",
			Example: "http://127.0.0.1:5000",
			set:     func(v *Values, raw string) error { return setEndpoint(&v.GlueEndpointURL, raw) },
			get:     func(v *Values) any { return orNone(v.GlueEndpointURL) },
		},
		toggle("discover", "list directories that look like partitions and are not in the catalog too",
			func(v *Values) *bool { return &v.Discover }),
		timeout("deregister-after", "how long a partition that was removed, and is not made again, stays in the catalog", "30s",
			func(v *Values) *time.Duration { return &v.DeregisterAfter }),
	}
	for i := range all {
		all[i].Glue = true
	}
	return append(
		all,
		catalogWrites(),
		glob("database", "serve only the databases whose name matches: 'sales*' (may be repeated)", func(v *Values) *[]string { return &v.Databases }),
		glob("table", "serve only the tables whose name matches (may be repeated)", func(v *Values) *[]string { return &v.Tables }),
	)
}

// catalogWrites is what may be written into the catalog; of manifests, which know no
// partitions, the entries.
func catalogWrites() Setting {
	return choice("catalog-writes", "what is written into the catalog: none; the partitions that files are published into, and that are removed; or also entries, by writing NAME.json",
		CatalogWritesPartitions, []string{CatalogWritesNone, CatalogWritesPartitions, CatalogWritesEntries},
		func(v *Values) *string { return &v.CatalogWrites })
}

// glob is a List of patterns, as path.Match has them.
func glob(name, usage string, at func(*Values) *[]string) Setting {
	s := Setting{Name: name, Type: "GLOB", Usage: usage, List: true, Example: "sales*", set: func(v *Values, raw string) error {
		_, err := path.Match(raw, "")
		if err != nil || raw == "" {
			return errors.New(`want a pattern of *, ?, [a-z] and \ before one of these`)
		}
		*at(v) = append(*at(v), raw)
		return nil
	}}
	return s.with(func(v *Values) any { return list(*at(v)) })
}

// GlueNames are the names of the settings for a Glue catalog alone.
func GlueNames() []string {
	var names []string
	for _, s := range catalog() {
		if s.Glue {
			names = append(names, s.Name)
		}
	}
	return names
}
