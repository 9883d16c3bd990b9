"""What the loop, the tools and the engine ask of the world: protocols, and the values that go through them."""
