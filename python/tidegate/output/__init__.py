"""Results as data ([document][tidegate.output.document]) and the forms into which renderers turn them.

Renderers read documents and depend on no result; results return documents and depend on no renderer.
"""
