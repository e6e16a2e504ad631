"""The job types that `tidemill_app` puts into the app. The producer knows them by this package."""
