package gluetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// Failure is an error as Glue answers it.
type Failure struct {
	Status  int    // of HTTP
	Code    string // "EntityNotFoundException"
	Message string
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

func fail(code, format string, args ...any) error {
	return &Failure{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return fail("EntityNotFoundException", format, args...)
}
func exists(message string) error { return fail("AlreadyExistsException", "%s", message) }
func invalid(format string, args ...any) error {
	return fail("InvalidInputException", format, args...)
}

// refused is what AWS says of an input that breaks the limits of its model.
func refused(what, constraint string) error {
	return fail("ValidationException", "1 validation error detected: Value at '%s' failed to satisfy constraint: %s", what, constraint)
}

// Answer is what the server sends, whole.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// answer is the answer of an operation that gave this.
func answer(body json.RawMessage, err error) Answer {
	a := Answer{Status: http.StatusOK, Header: http.Header{}, Body: body}
	if err != nil {
		f := &Failure{Status: http.StatusInternalServerError, Code: "InternalServiceException", Message: err.Error()}
		_ = errors.As(err, &f) // else it is a fault of this package
		a.Status = f.Status
		a.Body = object{{"__type", quote(f.Code)}, {"message", quote(f.Message)}}.raw()
		a.Header.Set("X-Amzn-Errortype", f.Code)
	}
	a.Header.Set("Content-Type", contentType)
	a.Header.Set("X-Amzn-Requestid", uuid.NewString())
	return a
}

const (
	contentType = "application/x-amz-json-1.1"
	prefix      = "AWSGlue."
	bodyLimit   = 64 << 20
)

// itemError is how a batch tells that one of its items failed.
func itemError(item object, err error) json.RawMessage {
	f := &Failure{Code: "InternalServiceException", Message: err.Error()}
	_ = errors.As(err, &f) // else it is a fault of this package
	values := item.get("Values")
	if values == nil {
		values = json.RawMessage("[]")
	}
	detail := object{{"ErrorCode", quote(f.Code)}, {"ErrorMessage", quote(f.Message)}}
	return object{{"PartitionValues", values}, {"ErrorDetail", detail.raw()}}.raw()
}
