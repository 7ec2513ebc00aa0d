"""Results as data ([document][tidegate.output.document]) and the forms that are made of it.

A renderer reads documents and knows no result; a result hands out a document and knows no renderer.
"""
