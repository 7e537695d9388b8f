package objectstore

// CredentialsError is why there are no credentials to sign a request with, as the
// provider in [S3Options].Config may tell it. Errors of requests have its text
// alone, without what the SDK puts around it.
type CredentialsError struct {
	Text    string // the cause, then "; " and the remedy
	Passing bool   // it may go away by itself: requests are tried again, as where the store does not answer
	Err     error  // what the provider said; it is not shown
}

// maxCredentialsText is longer than that of a store: a remedy follows it.
const maxCredentialsText = 800

func (e *CredentialsError) Error() string { return printableTo(maxCredentialsText, e.Text) }

// Unwrap says what it means for a request, and what the provider said.
func (e *CredentialsError) Unwrap() []error { return []error{e.sentinel(), e.Err} }

func (e *CredentialsError) sentinel() error {
	if e.Passing {
		return ErrUnavailable
	}
	return ErrPermission
}
