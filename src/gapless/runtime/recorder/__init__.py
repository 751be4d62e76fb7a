"""How does one record a trace that can be believed, without touching or harming the job?"""
