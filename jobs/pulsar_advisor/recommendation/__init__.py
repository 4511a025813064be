"""What is recommended: pure functions from states, settings and plans to the document, without a folder or Spark."""
