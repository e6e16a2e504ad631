"""The applications of this app. Each module or package here that defines an `Application` is deployed."""
