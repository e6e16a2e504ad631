"""The stories: each public function is one."""
