"""The executable book: run, tidy, gate, Colab copies, site check."""
