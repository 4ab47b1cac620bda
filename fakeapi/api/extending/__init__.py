"""Definitions at work: which custom resources there are, and in which form each is seen.

definitions  the resources that the store's definitions declare; what becomes of definitions
forms        the store, with custom resources in the version that is asked for
reviewing    from one version to another by a webhook
addresses    where a webhook is
"""
