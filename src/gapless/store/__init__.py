"""How is a read trace kept on disk, so that the second read is quick?"""
